package root

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/internal/tlstest"
)

// encrypted returns the parts of a job, with the TLS configurations of its ranks.
func encrypted(root string, configs ...*tls.Config) []part {
	var parts []part
	for rank, config := range configs {
		s := rankOf(root, rank, len(configs))
		s.TLS = config
		parts = append(parts, part{s, ample, exchange})
	}
	return parts
}

func TestEncrypted(t *testing.T) {
	t.Parallel()
	root := vacant(t)
	host, _, err := net.SplitHostPort(root)
	require.NoError(t, err)
	both := tlstest.Config(t, host)
	config := both.Clone()
	config.ClientAuth = tls.NoClientCert
	require.NoError(t, errors.Join(play(t, encrypted(vacantAt(t, host), config, config, config, config)...)...))
	require.NoError(t, errors.Join(play(t, encrypted(vacantAt(t, host), both, both, both)...)...))
	require.Zero(t, config.MinVersion, "the user's own configuration is left alone")
}

func TestEncryptionThatDoesNotFit(t *testing.T) {
	t.Parallel()
	root := vacant(t)
	host, _, err := net.SplitHostPort(root)
	require.NoError(t, err)
	good, other := tlstest.Config(t, host), tlstest.Config(t, host)
	for _, c := range []struct {
		name       string
		root, rank *tls.Config
		patience   time.Duration
		want       string
		onRoot     string
	}{
		{"certificate of another", other, good, ample, "failed to verify certificate", "bad certificate"},
		{"no certificate of the rank's", good, &tls.Config{RootCAs: good.RootCAs}, ample, "certificate required", "didn't provide a certificate"},
		{"only the root", good, nil, brief, "no root", "does not look like a TLS handshake"},
		{"only the rank", nil, good, brief, "no root", proof.ErrProtocol.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			root = vacantAt(t, host)
			s := rankOf(root, 0, 2)
			s.TLS = c.root
			l, err := listen(t.Context(), s)
			require.NoError(t, err)
			h := newHost(s, l)
			defer h.close()
			s = rankOf(root, 1, 2)
			s.TLS = c.rank
			_, err = Join(t.Context(), s, c.patience)
			require.ErrorContains(t, err, c.want)
			await.True(t, "rejected", func() bool { n, _ := h.rejected(); return n > 0 })
			_, last := h.rejected()
			require.Contains(t, last, c.onRoot)
		})
	}
}

// A configuration that the user's configuration substitutes for a connection cannot allow an older version.
func TestNoOlderTLS(t *testing.T) {
	t.Parallel()
	root := vacant(t)
	host, _, err := net.SplitHostPort(root)
	require.NoError(t, err)
	config := tlstest.Config(t, host)
	older := config.Clone()
	older.MaxVersion = tls.VersionTLS12
	s := rankOf(root, 0, 2)
	s.TLS = config.Clone()
	s.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return older, nil }
	l, err := listen(t.Context(), s)
	require.NoError(t, err)
	h := newHost(s, l)
	defer h.close()
	conn, err := tls.Dial("tcp", root, older)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(ample)))
	require.Error(t, proof.Dial(conn, testKey, purpose), "the root has answered over %s", tls.VersionName(conn.ConnectionState().Version))
	await.True(t, "rejected", func() bool { n, _ := h.rejected(); return n > 0 })
	_, who := h.rejected()
	require.Contains(t, who, "the peer speaks TLS 1.2, the least allowed is TLS 1.3")
}

// A root that ends sends nothing to a connection without a seat: over TLS it would wait for a peer that does not read.
func TestEndDoesNotWaitForGoodbyes(t *testing.T) {
	t.Parallel()
	h := formingHost(t, 2)
	config := tlstest.Config(t, "127.0.0.1")
	config.ServerName, config.SessionTicketsDisabled = "127.0.0.1", true
	carrier, far := net.Pipe()
	defer far.Close()
	conn, shaken := tls.Server(carrier, config), make(chan error)
	go func() { shaken <- conn.Handshake() }()
	require.NoError(t, tls.Client(far, config).Handshake())
	require.NoError(t, <-shaken)
	require.True(t, h.keep(conn, carrier))
	go h.close()
	_, err := far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the root said something")
}

func TestTLSSettingsAreChecked(t *testing.T) {
	old := tlstest.Config(t, "127.0.0.1")
	old.MaxVersion = tls.VersionTLS12
	for rank, c := range []struct {
		config *tls.Config
		says   string
	}{{&tls.Config{}, "without a certificate"}, {old, "TLS of at most TLS 1.2, must allow TLS 1.3"}} {
		s := rankOf("127.0.0.1:7000", rank, 2)
		s.TLS = c.config
		_, err := Join(t.Context(), s, ample)
		require.ErrorIs(t, err, ErrSettings)
		require.ErrorContains(t, err, c.says)
	}
}
