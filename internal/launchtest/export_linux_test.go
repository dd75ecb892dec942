package launchtest

// Descendants are the processes that one has started, by any number of steps.
var Descendants = descendants

// StatusStopped is what a keeper exits with that has ended its command.
const StatusStopped = statusStopped
