package machine

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// busyTime returns the work of all processors, including time that a hypervisor took.
func busyTime() (busy time.Duration, known bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	return busyIn(string(text))
}

// busyIn reads /proc/stat. Its first line has user, nice, system, idle, iowait, irq, softirq and steal in hundredths
// of a second.
func busyIn(stat string) (busy time.Duration, known bool) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, false
	}
	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, false
		}
		if idle := i == 3 || i == 4; !idle {
			busy += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return busy, true
}

// LoadAverage returns the load average of the last minute, or "" if it is unknown.
func LoadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	average, _, _ := strings.Cut(string(text), " ")
	return average
}
