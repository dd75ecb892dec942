// Package golden compares what a test got with a recorded file, and rewrites the file if the test runs with -rewrite.
package golden

import _ "github.com/onesided/rma/internal/platform"
