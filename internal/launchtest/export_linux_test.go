package launchtest

// Descendants returns the processes that an ancestor has started, directly or indirectly.
var Descendants = descendants

// BecomesUnprivileged returns an error if root cannot start processes of the user as which Slurm runs.
var BecomesUnprivileged = becomesUnprivileged

// StatusStopped is what a supervisor exits with that has ended its command.
const StatusStopped = statusStopped
