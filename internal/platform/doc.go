// Package platform makes a build for an unsupported system or processor fail, with one sentence that says so. Every
// other package imports it. README.md lists the supported systems.
package platform
