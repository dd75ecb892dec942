package jobtest

// ForgetMain makes Start behave as in a package whose TestMain does not call Main.
func ForgetMain() { hasMain = false }
