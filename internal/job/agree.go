package job

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"github.com/onesided/rma/internal/bootstrap/root"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/tuning"
)

// protocol is the version of all that ranks say to each other. It rises with every change of that, and begins each
// introduction, in every version.
const protocol = "rma15"

// terms lists what all ranks of a job must have in common. Two ranks that differ in any of it both return an error that
// names it, before they reach each other over a device. A later version may change the list, but for how it begins.
//
// Ranks that reach each other over RDMA cards also have equally many, see agreeOnCards. Ranks with pages of different sizes
// may share memory: nothing that one writes there depends on the size of its pages.
func (s *Settings) terms(size int) root.Terms {
	return root.Terms(strings.Join([]string{
		versionTerm(protocol),
		"byte order " + byteOrder(),
		fmt.Sprintf("word size %d bits", bits.UintSize),
		"a job of " + errtext.Count(size, "rank"),
		told(s.device),
		tuningTerm(&s.tuning),
		either(s.network != nil, "WithNetwork"),
		either(s.tls != nil, "WithTLS"),
		keyTerm(s.key),
		errtext.Count(s.addresses(), "address") + " (RMA_ADDRESS)",
	}, ";"))
}

func versionTerm(version string) string { return "protocol version " + version }

func byteOrder() string {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return "little-endian"
	}
	return "big-endian"
}

// told is which device a rank was told to use.
func told(device string) string {
	if device == "" {
		return "RMA_DEVICE " + unset
	}
	return "RMA_DEVICE=" + device
}

// tuningTerm has the switches of a Tuning on which ranks must agree.
func tuningTerm(t *tuning.Tuning) string {
	text := fmt.Sprintf("Tuning.Algorithm=%d", t.Algorithm)
	for _, field := range []struct {
		set  bool
		name string
	}{{t.NoPipes, "NoPipes"}, {t.NoCells, "NoCells"}, {t.NoStaging, "NoStaging"}} {
		if field.set {
			text += " " + field.name
		}
	}
	return text
}

func either(with bool, option string) string {
	if with {
		return option
	}
	return "no " + option
}

// keyless is the term of a rank that no user has given a key, which gets one from rank 0.
const keyless = "no key of its own"

// keyTerm tells keys apart without giving them away.
func keyTerm(key []byte) string {
	if key == nil {
		return keyless
	}
	sum := sha256.Sum256(key)
	return fmt.Sprintf("a key with the hash %x", sum[:4])
}

// disagreement is why a rank that has something in the place of what this one has is in no job with it.
func disagreement(rank int, theirs, mine string) error {
	return fmt.Errorf("%w: rank %d has %s, this rank %s; all ranks must have the same", ErrMismatch, rank, theirs, mine)
}

// agree checks that a rank has the same terms as this one.
func agree(rank int, theirs, mine root.Terms) error {
	its, own := theirs.Differ(mine)
	switch {
	case its == own:
		return nil
	case its == keyless || strings.HasPrefix(its, "a key "):
		return fmt.Errorf("%w (RMA_KEY_FILE or WithKey)", disagreement(rank, its, own))
	}
	return disagreement(rank, its, own)
}

// agreeOnCards checks that ranks which reach some over RDMA cards have equally many, after limitSharing.
func agreeOnCards(ranks []introduction, me int) error {
	apart := false
	for i := range ranks {
		apart = apart || ranks[i].host == "" || ranks[i].host != ranks[0].host
	}
	for i := range ranks {
		if apart && ranks[i].rdma != ranks[me].rdma {
			cards := func(n int) string { return errtext.Count(n, "RDMA card") + " (RMA_IBV_DEVICE)" }
			err := disagreement(i, cards(ranks[i].rdma), cards(ranks[me].rdma))
			if why := ranks[me].unshared; why != nil && near(ranks) {
				// Ranks that share memory need no cards, so this limit may be the cause.
				err = fmt.Errorf("%w; this rank shares no memory: %w", err, why)
			}
			return err
		}
	}
	return nil
}
