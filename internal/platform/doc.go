// Package platform is imported by all others, so that a build for a system or a processor that is not supported fails with
// one sentence, which says so. README.md lists what is supported.
package platform
