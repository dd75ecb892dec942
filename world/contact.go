package world

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/onesided/rma/verbs"
)

// A contact is what a rank tells the others of itself: where its devices are, and
// where its block of flags is on each.
type contact struct {
	addresses [cardKinds]string
	block     Places
}

// errContact is a text that is no contact.
var errContact = errors.New("malformed contact")

// text is printable and without spaces, as key-value spaces demand.
func (c *contact) text() string {
	var b strings.Builder
	for kind, address := range c.addresses {
		if address != "" {
			r := c.block[kind]
			fmt.Fprintf(&b, "%s;%s;%x;%x;%x;", cardKind(kind), address, r.Address, r.Length, r.RKey)
		}
	}
	return b.String()
}

// parseContact reads what text has written. Cards of kinds that are not known here
// are passed over.
func parseContact(text string) (contact, error) {
	const fieldsOfCard = 5
	var c contact
	fields := strings.Split(strings.TrimSuffix(text, ";"), ";")
	if len(fields)%fieldsOfCard != 0 {
		return c, fmt.Errorf("%w of %d fields: %.200q", errContact, len(fields), text)
	}
	for ; len(fields) > 0; fields = fields[fieldsOfCard:] {
		for kind, name := range cardNames {
			if name != fields[0] {
				continue
			}
			region, err := parseRegion(fields[2:fieldsOfCard])
			if err != nil {
				return c, fmt.Errorf("%w: %w: %.200q", errContact, err, text)
			}
			c.addresses[kind], c.block[kind] = fields[1], region
		}
	}
	return c, nil
}

func parseRegion(fields []string) (verbs.RemoteRegion, error) {
	var numbers [3]uint64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseUint(fields[i], 16, 64); err != nil {
			return verbs.RemoteRegion{}, err
		}
	}
	if numbers[2] > 1<<32-1 {
		return verbs.RemoteRegion{}, fmt.Errorf("key %x has more than 32 bits", numbers[2])
	}
	return verbs.RemoteRegion{Address: numbers[0], Length: numbers[1], RKey: uint32(numbers[2])}, nil
}
