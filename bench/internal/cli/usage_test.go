package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesAreChecked(t *testing.T) {
	for _, test := range []struct {
		named []string
		want  string
	}{
		{nil, ""},
		{[]string{"a", "b"}, ""},
		{[]string{"a", "-v"}, "bench: -v: flags come before the figures"},
		{[]string{"a", "b", "a"}, "bench: figure a is named twice"},
		{[]string{"c"}, `bench: there is no figure "c"; there are a, b`},
	} {
		err := CheckNamed("figure", test.named, []string{"a", "b"})
		if test.want == "" {
			assert.NoError(t, err, "%v", test.named)
			continue
		}
		assert.EqualError(t, err, test.want)
		assert.ErrorIs(t, err, ErrUsage)
	}
}

func TestACommandLineIsQuotedForAShell(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "go run ./bench"},
		{[]string{GateCommand, "-against", "HEAD~1"}, "go run ./bench gate -against 'HEAD~1'"},
		{[]string{"-cells", "^shm (put|get)", ""}, "go run ./bench -cells '^shm (put|get)' ''"},
		{[]string{"it's"}, `go run ./bench 'it'\''s'`},
	} {
		assert.Equal(t, test.want, CommandLine(test.args))
	}
}
