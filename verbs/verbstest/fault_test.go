package verbstest

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/verbs"
)

// What a device in another process says is of the class that it was of there.
func TestFaultsKeepTheirClass(t *testing.T) {
	sentinels := []error{
		verbs.ErrClosed, verbs.ErrQueueFull, verbs.ErrMemory, verbs.ErrPeerGone, verbs.ErrDisconnected,
		verbs.ErrRejected, verbs.ErrShortage, errors.ErrUnsupported,
	}
	for _, class := range sentinels {
		var wire bytes.Buffer
		var got fault
		said := fmt.Errorf("card: %w", class)
		if err := errors.Join(gob.NewEncoder(&wire).Encode(faultOf(said)), gob.NewDecoder(&wire).Decode(&got)); err != nil {
			t.Fatal(err)
		}
		if got.Error() != said.Error() {
			t.Errorf("%q came as %q", said, &got)
		}
		for _, other := range sentinels {
			if want := errors.Is(class, other); errors.Is(&got, other) != want {
				t.Errorf("errors.Is(%q, %q) is %v", said, other, !want)
			}
		}
	}
}
