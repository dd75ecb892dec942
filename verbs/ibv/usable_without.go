//go:build !ibverbs || !cgo || !linux

package ibv

// Usable returns an error if Open would find no port of a card for the options. In this program that is always a
// *verbs.CapabilityError.
func Usable(options Options) error {
	_, err := Open(options)
	return err
}
