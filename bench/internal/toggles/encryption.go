package toggles

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/onesided/rma/world"
)

// encryptionName is the name in the certificate of encryption.
const encryptionName = "bench"

// encrypted returns an option that makes ranks encrypt their connections. Each process makes the same certificate,
// from a public key. So it shows the cost of encryption; the job's key authenticates the ranks, as without
// encryption.
func encrypted() (world.Option, error) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{encryptionName},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	known := x509.NewCertPool()
	known.AddCert(certificate)
	return world.WithTLS(&tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs:      known,
		ServerName:   encryptionName,
	}), nil
}
