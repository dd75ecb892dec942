package paper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/chart/charttest"
)

func TestKeptFiguresCanBeRead(t *testing.T) {
	files, err := filepath.Glob("../../figures/*.svg")
	require.NoError(t, err)
	assert.Len(t, files, len(Figures()))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		charttest.Check(t, file, string(text))
	}
}

// The legend has the name of each curve, and what the cases below call it.
func TestKeptFiguresNameTheirCurves(t *testing.T) {
	for _, f := range Figures() {
		text, err := os.ReadFile("../../figures/" + f.Name() + ".svg")
		require.NoError(t, err)
		m := charttest.Read(t, string(text))
		names := strings.Join(m.Names, " ")
		for _, c := range f.curves {
			assert.Contains(t, names, c.name+" ("+c.short+")", f.Name())
		}
		assert.Len(t, m.Keys, len(f.curves), f.Name())
	}
}
