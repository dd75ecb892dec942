package cli

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestProgressWithoutATerminalIsALineNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		show, done := Progress(&text)
		for i := range 70 {
			show(fmt.Sprintf("step %d", i))
			time.Sleep(time.Second) // computes
		}
		done()
		assert.Equal(t, "bench: step 30\nbench: step 60\n", text.String())
	})
}
