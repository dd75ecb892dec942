// Package tlstest makes certificates for tests of TLS:
//
//	config := tlstest.Config(t, "127.0.0.1")
//	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithTLS(config))
//
// A configuration serves both sides of a connection. Each side demands a certificate of its peer, and accepts only
// the one that both have. Two calls of Config make sides that reject each other.
//
// Processes share a certificate as text, by PEM and FromPEM.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Config returns a configuration with a new certificate for the hosts, which are IP addresses.
func Config(t testing.TB, hosts ...string) *tls.Config {
	t.Helper()
	config, err := FromPEM(PEM(t, hosts...))
	require.NoError(t, err)
	return config
}

// PEM returns a new certificate for the hosts, which are IP addresses, with its private key. It is self-signed and
// valid for an hour.
func PEM(t testing.TB, hosts ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		address := net.ParseIP(host)
		require.NotNil(t, address, "host is %q, want an IP address", host)
		template.IPAddresses = append(template.IPAddresses, address)
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// FromPEM returns a configuration with a certificate that PEM returned. It returns an error if text has no
// certificate with its key.
func FromPEM(text string) (*tls.Config, error) {
	own, err := tls.X509KeyPair([]byte(text), []byte(text))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(own.Leaf)
	return &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
