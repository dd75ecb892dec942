package tcp

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/tlstest"
	"github.com/onesided/rma/verbs/tcp/proof"
)

// A configuration that the user's puts in its own place cannot allow an older version.
func TestNoOlderTLS(t *testing.T) {
	config := tlstest.Config(t, "127.0.0.1")
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
