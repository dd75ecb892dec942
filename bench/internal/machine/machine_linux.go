package machine

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// processorName returns the processor's model. Kernels for arm64 give numbers instead.
func processorName() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	return processorIn(string(text))
}

func processorIn(cpuinfo string) string {
	fields := make(map[string]string)
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		fields[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	switch {
	case fields["model name"] != "":
		name := fields["model name"]
		if family := fields["cpu family"]; family != "" {
			name += " (family " + family + ")"
		}
		return name
	case fields["CPU part"] != "":
		return fmt.Sprintf("%s implementer %s part %s", runtime.GOARCH, fields["CPU implementer"], fields["CPU part"])
	}
	return runtime.GOARCH
}

func kernelRelease() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(text))
}
