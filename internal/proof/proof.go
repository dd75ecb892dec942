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

// Version of the dialogue that this package speaks. Version 2 binds the proof to a TLS connection.
const Version = 2

var (
	// ErrKey: the peer holds another key, means another purpose, or is a third party between two TLS connections.
	ErrKey = errors.New("proof: the peer holds another key, connects for another purpose, or relays TLS: all ranks of a job must have the same key (RMA_KEY_FILE, or WithKey), and so must a server and its clients (RMA_SERVE_KEY_FILE, or WithKey)")
	// ErrVersion: the peer speaks another version of the dialogue.
	ErrVersion = errors.New("proof: another version")
	// ErrProtocol: what the peer sends is not this dialogue at all.
	ErrProtocol = errors.New("proof: not this protocol")
)

// exporterLabel is that of RFC 9266: the keying material that it names is the same at both ends of a TLS connection, and
// differs between any two connections.
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

// refusal stands where a MAC would. That a MAC is all zeros by chance is as likely as
// to guess one.
var refusal [macSize]byte

// Dial proves the key to the peer that accepts on conn and has it prove the same. The
// purpose, any text, must be the acceptor's. An error that is none of this package's
// sentinels wraps the connection's, a peer that ended early gives io.ErrUnexpectedEOF.
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
		// The acceptor is told, but that he is not changes nothing.
		_ = d.write("refusal", refusal[:])
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

// Accept is the other side of Dial, with the same errors.
func Accept(conn io.ReadWriter, key []byte, purpose string) error {
	return accept(conn, key, purpose, func() error { return nil })
}

// accept calls proven when the peer has proved the key and does not know it yet.
func accept(conn io.ReadWriter, key []byte, purpose string, proven func() error) error {
	if err := checkKey(key); err != nil {
		return err
	}
	d := dialogue{conn: conn, key: key, purpose: purpose}
	version, err := d.readHead("hello")
	if err != nil {
		return err
	}
	// The hello is of one length in every version. It is taken whole even if it is of
	// another, because to close a socket with bytes unread throws away what was
	// written to it, here the version that the peer should learn.
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
		// One who has refused is not listening any more.
		if theirs != refusal {
			_ = d.write("refusal", refusal[:])
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

// dialogue is one side's view.
type dialogue struct {
	conn    io.ReadWriter
	key     []byte
	purpose string
	// channel is the keying material of the TLS connection, empty without TLS.
	channel []byte
	nonces  struct{ initiator, acceptor [nonceSize]byte }
}

// bind takes the channel from a connection with TLS, whose handshake is over when something was read.
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
