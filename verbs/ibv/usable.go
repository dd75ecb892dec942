//go:build ibverbs && cgo && linux

package ibv

// Usable returns an error if Open would find no port of a card for the options. It is a *verbs.CapabilityError if there
// is no such port.
func Usable(options Options) error {
	d := new(device)
	err := d.openCard(&options)
	if err == nil {
		d.card.close()
	}
	return err
}
