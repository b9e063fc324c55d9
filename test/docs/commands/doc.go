// Package commands runs the commands of the documents. A console block stands in one of three relations to the tests:
//
//   - Commands of kubectl, oc and clusterctl are run as they stand, on an API server with the admission of a hub, beside the objects of testdata/hub.yaml. Kinds of what else users have on
//     their hubs and in their clusters (OpenShift, ACM, Argo CD, Prometheus' operator) are there too, without anybody who acts upon them: testdata/foreign.yaml.
//   - Commands of make and go are not run: that their targets, packages, tests and flags exist is checked. CI runs most of them.
//   - A comment right before the block says what else is so: <!-- run by TestName in test/folder -->, whose test files must then have its subcommands and flags, or <!-- needs Pods -->, or
//     whatever else of docs.Lacking keeps it from being run. It takes no other excuse.
package commands
