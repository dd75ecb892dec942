package launchtest

// Descendants returns the processes that an ancestor has started, directly or indirectly.
var Descendants = descendants

// StatusStopped is the exit status of a keeper that has ended its command.
const StatusStopped = statusStopped
