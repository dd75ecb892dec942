package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const latencyOutput = `
 local address: LID 0000 QPN 0x0011 PSN 0x4af2a3
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 8       5000          15.62          1985.62      23.50    	       29.46       	48.88  		231.20  		661.80 
---------------------------------------------------------------------------------------
`

const bandwidthOutput = ` #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      500              117.74             111.15 		   0.001778
`

func TestParse(t *testing.T) {
	for _, test := range []struct {
		output string
		column int
		want   float64
	}{
		{latencyOutput, typicalColumn, 23.5}, {bandwidthOutput, averageColumn, 111.15}, {bandwidthOutput, rateColumn, 0.001778},
	} {
		got, err := parse(test.output, test.column)
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	for output, says := range map[string]string{
		"":                        "no table",
		"Couldn't connect\n":      "no table: Couldn't connect",
		" #bytes t_min":           "no table",
		" #bytes BW\n 8 5":        `no column 4: " 8 5"`,
		" #bytes\n 8 5 1 2 x\n":   `"x" where a figure is to be`,
		" #bytes\n 8 5 1 2 0.0\n": `"0.0" where a figure is to be`,
	} {
		_, err := parse(output, rateColumn)
		require.ErrorContains(t, err, says)
	}
}

func TestTable(t *testing.T) {
	all := figures()
	lat, bw := &row{figure: all[0]}, &row{figure: all[5]}
	for i := range 3 {
		lat.add(20+10*float64(i), 15, 20)
		bw.add(80, 110, 100)
	}
	fop := &row{figure: all[3]}
	fop.add(90, 10, 10)
	require.Equal(t, `case          ours  bare card  perftest  unit  ratio  rounds      bare  goal     
put:8         30    15         20        us    1.50   1.00..2.00  0.75  <= 1.50  
put_bw:65536  80    110        100       MB/s  0.80   0.80..0.80  1.10  >= 0.85  missed
fop:8         90    10         10        us    9.00   9.00..9.00  1.00           
`, table([]*row{lat, bw, fop}))
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
}

func TestKinds(t *testing.T) {
	require.Equal(t, 25.0, single.in(0.04))
	require.InDelta(t, 104.86, bandwidth.in(100), 0.01)
	require.Equal(t, 0.04, rate.in(0.04))
	require.True(t, single.reached(1.4, 1.5))
	require.False(t, latency.reached(1.6, 1.5))
	require.False(t, rate.reached(1.4, 1.5))
}

func TestOptions(t *testing.T) {
	require.NoError(t, (&options{rounds: 1, names: []string{"get", "put_bw"}}).check())
	require.ErrorContains(t, (&options{}).check(), "-rounds 0: at least 1")
	require.ErrorContains(t, (&options{rounds: 1, names: []string{"take"}}).check(), `there is no case "take"`)
}
