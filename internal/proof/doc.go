// Package proof lets the two ends of a connection prove to each other that they hold the key of one job. Neither end
// reads anything else before that.
//
//	err := proof.Accept(conn, key, "peer") // the side that was called
//	err := proof.Dial(conn, key, "peer")   // the side that calls
//
// Four messages of fixed length cross. Each is read whole, and nothing is read beyond it:
//
//	initiator  magic 8, version 2, nonce 32
//	acceptor   magic 8, version 2, nonce 32, MAC 32 of the role "acceptor"
//	initiator  MAC 32 of the role "initiator"
//	acceptor   MAC 32 of the role "confirmation"
//
// A MAC is HMAC-SHA-256 under the key over magic, version, role, the caller's purpose, the channel, and both nonces.
// Each field has a fixed length or is preceded by its length. The channel is empty without TLS. With TLS it is the
// keying material that both ends of the connection export (RFC 9266). A side that rejects the other sends zeros as its
// MAC, so that both ends know the reason. Numbers are big-endian.
//
// Guarantees:
//
//   - Both ends return nil only if both hold the key, name the same purpose and saw the same two nonces.
//   - A recorded dialogue is worthless: each side's nonce is fresh and in every MAC.
//   - A side's own messages sent back to it prove nothing: the role is in the MAC, and an initiator rejects its own
//     nonce.
//   - The only MAC that a peer without the key can obtain is the acceptor's, one per connection. It covers a nonce that
//     the acceptor has just chosen, so it is of no use in another dialogue. It permits guessing keys offline. So a key
//     is random, not a password.
//   - Over TLS both ends of the proof are the ends of one TLS connection. A third party that ends TLS on both sides and
//     relays the proof fails, whatever certificates it has.
//
// Without TLS, the bytes after the proof are neither encrypted nor bound to it. An attacker on the path that relays the
// proof between two honest ends can then read and change them.
//
// A [Room] bounds the number of connections that are served before they prove the key. While it is full, a new
// connection is closed unless one in the room is old enough to be ended. Its peer has to call again.
//
// The caller sets a deadline on conn before and removes it after. It closes conn on any error, because its position in
// the stream is then unknown.
package proof

import _ "github.com/onesided/rma/internal/platform"
