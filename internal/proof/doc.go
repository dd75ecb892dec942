// Package proof lets the two ends of a connection prove to each other that they hold
// the key of one job, before either reads anything else of what the other sends.
//
//	err := proof.Accept(conn, key, "peer") // the side that was called
//	err := proof.Dial(conn, key, "peer")   // the side that calls
//
// Four messages of fixed length cross, each of which is read whole and never beyond:
//
//	initiator  magic 8, version 2, nonce 32
//	acceptor   magic 8, version 2, nonce 32, MAC 32 of the role "acceptor"
//	initiator  MAC 32 of the role "initiator"
//	acceptor   MAC 32 of the role "confirmation"
//
// A MAC is HMAC-SHA-256 under the key over magic, version, role, the purpose that the
// caller names, the channel, and both nonces; each field either has a fixed length or is
// preceded by its length. The channel is empty without TLS. With TLS it is the keying
// material that both ends of the connection export (RFC 9266). A side that refuses sends
// zeros for its MAC, so that both ends can name the reason. Numbers are big-endian.
//
// What holds:
//
//   - Both ends return nil only if both hold the key, name the same purpose and saw
//     the same two nonces.
//   - A recorded dialogue is worthless: each side's nonce is fresh and in every MAC.
//   - A side's own messages sent back to it prove nothing: the role is in the MAC, and
//     an initiator refuses its own nonce.
//   - The only MAC that a stranger gets is over a nonce that the acceptor chose just
//     then, so it can be used nowhere else. It does let him try keys at home: a key is
//     random ([NewKey]), not a password.
//   - Over TLS both ends of the proof are those of one TLS connection. A third party that
//     ends TLS on both sides and relays the proof fails, whatever certificates it has.
//
// What does not, without TLS: the bytes after the proof are neither encrypted nor bound to
// it. An attacker on the path who relays the proof between two honest ends can then read
// and change what they say.
//
// A [Room] bounds how many connections that have not proved the key are heard at once. While it is full, and none of them
// is old enough to be ended, one that comes is closed, and has to call again.
//
// Deadlines are the caller's: he sets one on conn before, takes it off after, and
// closes conn on any error, for where in its stream it stopped is unknown.
package proof

import _ "github.com/onesided/rma/internal/platform"
