package platform

import (
	"go/build"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Exactly the unsupported systems have the file whose error says so.
func TestSupported(t *testing.T) {
	supported := []string{"linux/amd64", "linux/arm64", "linux/riscv64", "linux/s390x", "darwin/amd64", "darwin/arm64"}
	for _, other := range append([]string{"linux/386", "linux/arm", "linux/ppc64le", "windows/amd64", "windows/arm64", "freebsd/amd64", "android/arm64", "ios/arm64", "js/wasm"}, supported...) {
		context := build.Default
		context.GOOS, context.GOARCH, _ = strings.Cut(other, "/")
		found, err := context.ImportDir(".", 0)
		require.NoError(t, err)
		require.Equal(t, slices.Contains(supported, other), !slices.Contains(found.GoFiles, "unsupported.go"), other)
	}
}

func TestSentence(t *testing.T) {
	command := exec.Command("go", "build", ".")
	command.Env = append(command.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	require.Error(t, err)
	require.Regexp(t, `^# \S+\n\S+: undefined: rma_supports_only_Linux_on_amd64_arm64_riscv64_or_s390x_and_macOS_on_amd64_or_arm64\n$`, string(output))
}

// Every public package imports this one, directly or indirectly. So its error comes first, and a user sees it before
// others.
func TestImported(t *testing.T) {
	const module, root = "github.com/onesided/rma", "../.."
	leads := map[string]bool{module + "/internal/platform": true}
	var look func(name string) bool
	look = func(name string) bool {
		if known, ok := leads[name]; ok || !strings.HasPrefix(name, module+"/") {
			return known
		}
		found, err := build.Default.ImportDir(filepath.Join(root, strings.TrimPrefix(name, module)), 0)
		require.NoError(t, err, name)
		// A package that has only tests is imported by no other.
		leads[name] = len(found.GoFiles)+len(found.CgoFiles) == 0 || slices.ContainsFunc(found.Imports, look)
		return leads[name]
	}
	output, err := exec.Command("go", "list", module+"/...").Output()
	require.NoError(t, err)
	arguments := []string{"list", "-deps"}
	for name := range strings.Lines(string(output)) {
		name = strings.TrimSpace(name)
		if !strings.Contains(name, "/internal/") && path.Base(name) != "course" {
			require.True(t, look(name), "%s must import %s/internal/platform, or a package that does", name, module)
			arguments = append(arguments, name)
		}
	}
	// Packages that call the system may not compile elsewhere, and would add errors of their own.
	output, err = exec.Command("go", arguments...).Output()
	require.NoError(t, err)
	for name := range strings.Lines(string(output)) {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(name, module+"/internal/") {
			found, err := build.Default.ImportDir(filepath.Join(root, strings.TrimPrefix(name, module)), 0)
			require.NoError(t, err, name)
			system := slices.Contains(found.Imports, "syscall") || slices.Contains(found.Imports, "golang.org/x/sys/unix")
			require.True(t, !system || look(name), "%s must import %s/internal/platform", name, module)
		}
	}
}
