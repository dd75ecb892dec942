package jobtest

// ForgetMain has this process be one whose TestMain does not call Main.
func ForgetMain() { hasMain = false }
