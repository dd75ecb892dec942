package verbstest

var deviceCases = []testCase{}
