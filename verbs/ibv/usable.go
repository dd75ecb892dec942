//go:build ibverbs && cgo && linux

package ibv

// Usable tells whether Open would find a port of a card, as the options want it. If not the error
// says why; it is a *verbs.CapabilityError where there is none.
func Usable(options Options) error {
	d := new(device)
	err := d.openCard(&options)
	if err == nil {
		d.card.close()
	}
	return err
}
