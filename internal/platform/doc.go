// Package platform is imported by all others. It makes a build for an unsupported system or processor fail with one
// sentence that says so. README.md lists what is supported.
package platform
