package program

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/onesided/rma/bench/internal/benchtest"
)

func TestAFailureIsToldInOneLine(t *testing.T) {
	status := errors.New("exit status 139")
	assert.Equal(t, "signal 11 (Segmentation fault)", Reason(status, benchtest.Recorded(t, "openmpi_cas_lat_crash.txt")))
	assert.Equal(t, "Alarm clock (signal 14)", Reason(status, benchtest.Recorded(t, "mpich_time_limit.txt")))
	assert.Equal(t, "exit status 139: no such host", Reason(status, "----\nno such host\n-----\n"))
	assert.Equal(t, "exit status 139", Reason(status, "\n\n"))
	const ended = "rmarun: rank 1 failed: signal: killed\nrmarun: 1 further rank was ended\n"
	assert.Equal(t, "exit status 139: rank 1 failed: signal: killed", Reason(status, ended))
	assert.Equal(t, "exit status 139: gups: wrong usage: -log 3", Reason(status, "gups: wrong usage: -log 3\ngups -h explains the usage\n"+ended))
}
