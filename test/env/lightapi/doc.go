// Package lightapi serves the API of a workload cluster out of the memory of this process: for measurements with more
// clusters at once than kube-apiservers would fit on the machine. One takes memory for its objects, and no process.
//
// What it is, as far as clients can tell: HTTP/2 over TLS with the certificates of its cluster; discovery; the kinds of
// [kinds] in JSON and Protobuf, as a whole or their metadata; get, list with selectors, watches from a resource version
// on (or with all that is there first), create, update, patch (merge, strategic, JSON) and delete, with optimistic
// locks, preconditions and status as a subresource; tokens of ServiceAccounts, which end with the Secret that they are
// bound to.
//
// What it is not: it validates, defaults and admits nothing, whoever is known may do everything, an object with
// finalizers goes at once, and the dependents of an object stay. It knows no server-side apply, no pages of lists and
// no deletion of collections. Tests of behaviour take the real one.
package lightapi
