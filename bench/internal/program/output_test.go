package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheTailOfOutputIsKept(t *testing.T) {
	var output LastOutput
	for range 3 {
		_, _ = output.Write(bytes.Repeat([]byte("a"), tailBytes/2))
	}
	_, _ = output.Write([]byte("end"))
	assert.Len(t, output.String(), tailBytes)
	assert.True(t, strings.HasSuffix(output.String(), "aend"))
}
