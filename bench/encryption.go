package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/onesided/rma/world"
)

// encryptionName is whom the certificate of encryption is for.
const encryptionName = "bench"

// encrypted has ranks encrypt what goes between them. Each process makes the same
// certificate by itself, from a key that anyone can know: it shows what encryption costs,
// and who the others are the job's key has to tell, as without.
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
