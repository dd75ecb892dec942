//go:build !ibverbs || !cgo || !linux

package ibv

// Usable tells whether Open would find a port of a card, as the options want it. In this program
// it would not: the error is a *verbs.CapabilityError.
func Usable(options Options) error {
	_, err := Open(options)
	return err
}
