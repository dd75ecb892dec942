//go:build !(linux && !android && (amd64 || arm64 || riscv64 || s390x)) && !(darwin && !ios && (amd64 || arm64))

package platform

// The compiler's error is the sentence.
var _ = rma_supports_only_Linux_on_amd64_arm64_riscv64_or_s390x_and_macOS_on_amd64_or_arm64
