package shm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// Each end of every connection asks the system for the user of the other end before it sends or receives anything
// (credentials). The other end must prove the key before memory is shared.

// credentials returns the process at the other end of a connection, which must belong to this process's user.
func credentials(conn *net.UnixConn) (*unix.Ucred, error) {
	var peer *unix.Ucred
	err := control(conn, func(fd int) (err error) {
		peer, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("shm: SO_PEERCRED: %w", err)
	}
	return peer, sameUser(peer.Uid, uint32(os.Geteuid()))
}

// control calls f with the descriptor of a connection.
func control(conn *net.UnixConn, f func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// overflowUser is the system's name for every user that the user name space of this process does not map.
const overflowUser = 65534

// sameUser returns an error for a peer of another user.
func sameUser(theirs, ours uint32) error {
	if theirs != ours {
		return fmt.Errorf("shm: the peer belongs to user %d, this process to user %d: %w", theirs, ours, os.ErrPermission)
	}
	return nil
}

// checkUser returns an error if this process runs as the overflow user and that stands for several users: a peer with
// this name may then be anyone.
func checkUser(root fs.FS, ours int) error {
	if ours != overflowUser {
		return nil
	}
	mapped, err := fs.ReadFile(root, "proc/self/uid_map")
	// The initial name space maps all users, each to itself.
	if err == nil && strings.Join(strings.Fields(string(mapped)), " ") == "0 0 4294967295" {
		return nil
	}
	return &verbs.CapabilityError{Device: deviceName, Capability: fmt.Sprintf("tell users apart as user %d", overflowUser),
		Reason: "in this user name space that is every user whom /proc/self/uid_map does not map; run the job as a user whom it maps", Cause: err}
}

const macBytes = sha256.Size

// errKey is the error for a peer that does not prove the key of Options.Key or SetKey.
var errKey = fmt.Errorf("shm: the peer holds another key: the processes of a job must have the same: %w", os.ErrPermission)

// SetKey replaces Options.Key, for a program that learns the key after it has opened the device. It must be called
// before a peer learns the address of the device.
func (d *Device) SetKey(key []byte) {
	if p, ok := d.form.(*process); ok {
		p.setKey(key)
	}
}

func (p *process) setKey(key []byte) {
	key = append([]byte(nil), key...)
	p.key.Store(&key)
}

// clientProof returns the mac by which the device at client proves the key to the device at server.
func (p *process) clientProof(server, client string) []byte {
	return p.mac("client", []byte(server), []byte(client))
}

// serverProof returns the mac by which the device at server proves the key in response to a nonce. It also covers the
// size of its segment.
func (p *process) serverProof(server string, nonce []byte, size uint64) []byte {
	return p.mac("server", []byte(server), nonce, binary.LittleEndian.AppendUint64(nil, size))
}

func (p *process) mac(role string, fields ...[]byte) []byte {
	m := hmac.New(sha256.New, *p.key.Load())
	m.Write([]byte("rma-shm-1 " + role))
	for _, field := range fields {
		m.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(field))))
		m.Write(field)
	}
	return m.Sum(nil)
}
