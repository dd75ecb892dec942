package tcp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs/tcp/proof"
)

// SelfSigned is a configuration for both ends of a connection on this machine, each
// of which takes only the certificate that both have.
func SelfSigned(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "job"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}},
		RootCAs:      pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

// A configuration that the user's puts in its own place cannot allow an older version.
func TestNoOlderTLS(t *testing.T) {
	config := SelfSigned(t)
	older := config.Clone()
	older.MaxVersion = tls.VersionTLS12
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return older, nil }
	var said logs
	far := openWith(t, Options{TLS: config, Logger: said.logger()})
	conn, err := tls.Dial("tcp", far.listener.Addr().String(), older)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	require.Error(t, proof.Dial(conn, make([]byte, keyOfNobody), purpose), "the device has answered over %s", tls.VersionName(conn.ConnectionState().Version))
	await(t, "the log", func() bool { return said.has("the peer speaks TLS 1.2, the least allowed is TLS 1.3") }, far)
}
