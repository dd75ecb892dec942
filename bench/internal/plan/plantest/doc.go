// Package plantest makes jobs for tests.
package plantest

import _ "github.com/onesided/rma/internal/platform"
