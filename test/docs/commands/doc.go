// Package commands runs the commands of the documents. The tests treat a console block in one of three ways:
//
//   - Commands of kubectl, oc and clusterctl are run on an API server with the admission of a hub and the objects of
//     testdata/hub.yaml. Foreign kinds of hubs and clusters (OpenShift, ACM, Argo CD, the Prometheus operator) exist too,
//     without controllers: testdata/foreign.yaml.
//   - Commands of make and go are not run. The tests check that their targets, packages, tests and flags exist. CI runs
//     most of them.
//   - A comment right before the block states an exception. <!-- run by TestName in test/folder -->: the test files must
//     contain the subcommands and flags of the block. <!-- run as name by TestName in test/folder -->: the test reads the
//     block from its document, and runs it as it is written. <!-- needs Pods -->: a requirement of docs.Lacking is missing.
//     Other exceptions are not permitted.
package commands
