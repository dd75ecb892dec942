package job

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A contact is what a rank tells the others of itself: where its devices are, and
// where its block of flags is on each, and what messages over it take.
type contact struct {
	addresses [cardKinds]string
	block     Places
	tolls     [cardKinds]toll
}

// errContact is a text that is no contact.
var errContact = errors.New("malformed contact")

// text is printable and without spaces, as key-value spaces demand.
func (c *contact) text() string {
	var b strings.Builder
	for kind, address := range c.addresses {
		if address != "" {
			r := c.block[kind]
			t := c.tolls[kind]
			fmt.Fprintf(&b, "%s;%s;%x;%x;%x;%x;%x;%x;", cardKind(kind), address, r.Address, r.Length, r.RKey, t.message, t.mebibyte, t.copied)
		}
	}
	return b.String()
}

// parseContact reads what text has written. Cards of kinds that are not known here
// are passed over.
func parseContact(text string) (contact, error) {
	const fieldsOfCard, fieldsOfRegion = 8, 3
	var c contact
	fields := strings.Split(strings.TrimSuffix(text, ";"), ";")
	if len(fields)%fieldsOfCard != 0 {
		return c, fmt.Errorf("%w of %s: %.200q", errContact, errtext.Count(len(fields), "field"), text)
	}
	for ; len(fields) > 0; fields = fields[fieldsOfCard:] {
		for kind := range cardKinds {
			name := kind.String()
			if name != fields[0] {
				continue
			}
			if fields[1] == "" {
				return c, fmt.Errorf("%w of a %s card without an address: %.200q", errContact, name, text)
			}
			region, err := parseRegion(fields[2:][:fieldsOfRegion])
			if err == nil {
				c.tolls[kind], err = parseToll(fields[2+fieldsOfRegion : fieldsOfCard])
			}
			if err != nil {
				return c, fmt.Errorf("%w: %w: %.200q", errContact, err, text)
			}
			c.addresses[kind], c.block[kind] = fields[1], region
		}
	}
	return c, nil
}

func parseRegion(fields []string) (verbs.RemoteRegion, error) {
	numbers, err := parseNumbers(fields)
	if err != nil {
		return verbs.RemoteRegion{}, err
	}
	if numbers[2] > 1<<32-1 {
		return verbs.RemoteRegion{}, fmt.Errorf("key %x has more than 32 bits", numbers[2])
	}
	return verbs.RemoteRegion{Address: numbers[0], Length: numbers[1], RKey: uint32(numbers[2])}, nil
}

func parseToll(fields []string) (toll, error) {
	numbers, err := parseNumbers(fields)
	if err != nil {
		return toll{}, err
	}
	if most := max(numbers[0], numbers[1], numbers[2]); most > mostToll {
		return toll{}, fmt.Errorf("a toll of %x, allowed are up to %x", most, uint64(mostToll))
	}
	return toll{numbers[0], numbers[1], numbers[2]}, nil
}

func parseNumbers(fields []string) (numbers [3]uint64, err error) {
	for i := range numbers {
		if numbers[i], err = strconv.ParseUint(fields[i], 16, 64); err != nil {
			return numbers, err
		}
	}
	return numbers, nil
}
