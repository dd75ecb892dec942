package ibv

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/onesided/rma/verbs"
)

// Options of a device.
type Options struct {
	// Device is the card and, behind a colon, its port: "mlx5_0", "mlx5_0:2". Without a
	// port it is the card's first that is active. Empty is the first card that has one.
	// Several, with commas between them, are for Rails.
	Device string
	// GID is which entry of the port's table is this side's address, where the fabric
	// needs one (RoCE does): an index, or an IP address that one of them stands for.
	// Empty is the best: RoCE v2 with an IPv4 address, then with an IPv6 address, then
	// RoCE v1.
	GID string
	// MTU is the most bytes of a packet: 256, 512, 1024, 2048 or 4096, or less where this
	// port or the peer's takes less. Zero is as many as both take.
	MTU int
	// Answer is after how long without an answer the card sends a packet again, rounded up
	// to 4.096 us times a power of two. It does so six times, each of which may take up to
	// four times as long; then the peer has failed. Zero is 268 ms.
	Answer time.Duration
	// OnDemand registers memory without pinning it. It is an error where the card does not
	// offer that. Atomics are none of the card's then that it does not offer on such memory.
	OnDemand bool

	// Listen is the host and port where peers call to exchange the addresses of queue pairs.
	// The port may be 0. Empty is port 0 of the loopback address. These connections carry no data, and may
	// go over any network.
	Listen string
	// Advertise is the host, or host and port, that peers use instead of Listen's. It
	// is needed where Listen names no single host.
	Advertise string
	// Key is the job's secret, 16 to 512 random bytes: see proof.NewKey. Without one
	// any process that reaches the port may connect; that is allowed only where
	// Listen is a loopback address.
	Key []byte
	// Silence is after how long without a word a peer is given up, whether or not there is
	// anything to send. Zero is 10 seconds.
	Silence time.Duration
	// HandshakeLimit bounds the time in which a peer that is called answers and the key is
	// proved. Zero is 5 seconds, or Silence where that is less.
	HandshakeLimit time.Duration
	// Logger is told of connections that were refused, and of ports that go down and come
	// back. One that blocks holds up nothing. Nil logs nothing.
	Logger *slog.Logger
}

// FromEnvironment gives Options whose Device and GID are those of the environment
// variables RMA_IBV_DEVICE and RMA_IBV_GID.
func FromEnvironment() Options {
	return Options{Device: os.Getenv("RMA_IBV_DEVICE"), GID: os.Getenv("RMA_IBV_GID")}
}

// Rails gives the options for each of several cards, whose names Device lists with commas between
// them. GID is then an entry of each card's table, in the same way, or one for all.
func (o Options) Rails() ([]Options, error) {
	devices, gids := strings.Split(o.Device, ","), strings.Split(o.GID, ",")
	if len(gids) != 1 && len(gids) != len(devices) {
		return nil, &verbs.ArgumentError{Device: deviceName, Text: "Options: GID is " + o.GID + " and Device " + o.Device + "; GID must be as many entries as Device names cards, or one"}
	}
	rails := make([]Options, len(devices))
	for i := range rails {
		rails[i] = o
		rails[i].Device, rails[i].GID = devices[i], gids[i%len(gids)]
		if devices[i] == "" && len(devices) > 1 {
			return nil, &verbs.ArgumentError{Device: deviceName, Text: "Options: Device is " + o.Device + ", of which a name is empty; it must be names of cards with commas between them"}
		}
	}
	return rails, nil
}

// deviceName begins the names of devices and the texts of errors.
const deviceName = "ibv"
