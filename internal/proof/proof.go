package proof

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version is the version of the dialogue. Version 2 binds the proof to a TLS connection.
const Version = 2

var (
	// ErrKey reports that the peer holds another key, has another purpose, or relays between two TLS connections.
	ErrKey = errors.New("proof: the peer holds another key, connects for another purpose, or relays TLS: all ranks of a job must have the same key (RMA_KEY_FILE, or WithKey), and so must a server and its clients (RMA_SERVE_KEY_FILE, or WithKey)")
	// ErrVersion reports that the peer uses another version of the dialogue.
	ErrVersion = errors.New("proof: the peer uses another version")
	// ErrProtocol reports that the peer does not speak this dialogue.
	ErrProtocol = errors.New("proof: not this protocol")
)

// exporterLabel is the label of RFC 9266. Its keying material is the same at both ends of a TLS connection, and
// different for any two connections.
const exporterLabel = "EXPORTER-Channel-Binding"

const (
	magic     = "RMAproof"
	headSize  = len(magic) + 2
	nonceSize = 32
	macSize   = sha256.Size
)

type role string

const (
	acceptor     role = "acceptor"
	initiator    role = "initiator"
	confirmation role = "confirmation"
)

// rejection stands in place of a MAC. A real MAC is all zeros only with the probability of guessing one.
var rejection [macSize]byte

// Dial proves the key to the peer that accepts on conn, and has the peer prove it too. purpose is any text; the
// acceptor's must be the same. An error that is none of this package's sentinels wraps the error of the connection. A
// peer that ends early is an io.ErrUnexpectedEOF.
func Dial(conn io.ReadWriter, key []byte, purpose string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	d := dialogue{conn: conn, key: key, purpose: purpose}
	_, _ = rand.Read(d.nonces.initiator[:]) // it never fails
	if err := d.write("hello", head(), d.nonces.initiator[:]); err != nil {
		return err
	}
	version, err := d.readHead("challenge")
	if err != nil {
		return err
	}
	// An acceptor of another version stops after its head.
	if err := checkVersion(version); err != nil {
		return err
	}
	if err := d.read("challenge", d.nonces.acceptor[:]); err != nil {
		return err
	}
	if d.nonces.acceptor == d.nonces.initiator {
		return fmt.Errorf("%w: this side's own nonce came back", ErrProtocol)
	}
	var theirs [macSize]byte
	if err := d.read("challenge", theirs[:]); err != nil {
		return err
	}
	if err := d.bind(); err != nil {
		return err
	}
	if !hmac.Equal(theirs[:], d.mac(acceptor)) {
		// The result is ErrKey even if the rejection does not reach the acceptor.
		_ = d.write("rejection", rejection[:])
		return ErrKey
	}
	if err := d.write("answer", d.mac(initiator)); err != nil {
		return err
	}
	if err := d.read("confirmation", theirs[:]); err != nil {
		return err
	}
	if !hmac.Equal(theirs[:], d.mac(confirmation)) {
		return ErrKey
	}
	return nil
}

// Accept is the acceptor's side of Dial, with the same errors.
func Accept(conn io.ReadWriter, key []byte, purpose string) error {
	return accept(conn, key, purpose, func() error { return nil })
}

// accept calls proven when the peer has proved the key and does not know that yet.
func accept(conn io.ReadWriter, key []byte, purpose string, proven func() error) error {
	if err := checkKey(key); err != nil {
		return err
	}
	d := dialogue{conn: conn, key: key, purpose: purpose}
	version, err := d.readHead("hello")
	if err != nil {
		return err
	}
	// The hello has the same length in every version. It is read whole even if the version differs: closing a socket
	// with unread bytes discards what was written to it, here the version for the peer.
	if err := d.read("hello", d.nonces.initiator[:]); err != nil {
		return err
	}
	if err := checkVersion(version); err != nil {
		_ = d.write("version", head())
		return err
	}
	_, _ = rand.Read(d.nonces.acceptor[:]) // it never fails
	if err := d.bind(); err != nil {
		return err
	}
	if err := d.write("challenge", head(), d.nonces.acceptor[:], d.mac(acceptor)); err != nil {
		return err
	}
	var theirs [macSize]byte
	if err := d.read("answer", theirs[:]); err != nil {
		return err
	}
	if !hmac.Equal(theirs[:], d.mac(initiator)) {
		// A peer that has sent a rejection does not listen any more.
		if theirs != rejection {
			_ = d.write("rejection", rejection[:])
		}
		return ErrKey
	}
	if err := proven(); err != nil {
		return err
	}
	return d.write("confirmation", d.mac(confirmation))
}

func head() []byte { return binary.BigEndian.AppendUint16([]byte(magic), Version) }

func checkVersion(version uint16) error {
	if version != Version {
		return fmt.Errorf("%w: the peer speaks %d, this side %d", ErrVersion, version, Version)
	}
	return nil
}

// dialogue is the state of one side.
type dialogue struct {
	conn    io.ReadWriter
	key     []byte
	purpose string
	// channel is the keying material of the TLS connection, empty without TLS.
	channel []byte
	nonces  struct{ initiator, acceptor [nonceSize]byte }
}

// bind sets channel if the connection has TLS. The handshake is complete once something was read.
func (d *dialogue) bind() (err error) {
	secure, ok := d.conn.(interface{ ConnectionState() tls.ConnectionState })
	if !ok {
		return nil
	}
	state := secure.ConnectionState()
	if d.channel, err = state.ExportKeyingMaterial(exporterLabel, nil, sha256.Size); err != nil {
		return fmt.Errorf("proof: binding the proof to %s: %w", tls.VersionName(state.Version), err)
	}
	return nil
}

func (d *dialogue) mac(r role) []byte {
	m := hmac.New(sha256.New, d.key)
	m.Write(head())
	for _, field := range []string{string(r), d.purpose, string(d.channel)} {
		m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		m.Write([]byte(field))
	}
	m.Write(d.nonces.initiator[:])
	m.Write(d.nonces.acceptor[:])
	return m.Sum(nil)
}

func (d *dialogue) readHead(what string) (version uint16, err error) {
	var h [headSize]byte
	if err := d.read(what, h[:]); err != nil {
		return 0, err
	}
	if string(h[:len(magic)]) != magic {
		return 0, fmt.Errorf("%w: the peer begins with %q, must be %q", ErrProtocol, h[:len(magic)], magic)
	}
	return binary.BigEndian.Uint16(h[len(magic):]), nil
}

func (d *dialogue) read(what string, into []byte) error {
	_, err := io.ReadFull(d.conn, into)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("proof: awaiting the %s: %w", what, err)
	}
	return nil
}

// write sends a message in one piece.
func (d *dialogue) write(what string, fields ...[]byte) error {
	if _, err := d.conn.Write(bytes.Join(fields, nil)); err != nil {
		return fmt.Errorf("proof: sending the %s: %w", what, err)
	}
	return nil
}
