// Package lightapi serves the API of a workload cluster from the memory of this process. Measurements can use more
// clusters than kube-apiservers would fit on the machine: a cluster needs memory for its objects, and no process.
//
// Supported:
//   - HTTP/2 over TLS with the certificates of the cluster, and discovery.
//   - The kinds of [kinds] in JSON and Protobuf, complete or metadata only.
//   - Get, list with selectors, and watch from a resource version (or with all existing objects first).
//   - Create, update, patch (merge, strategic, JSON) and delete, with optimistic locks and preconditions.
//   - Status as a subresource.
//   - Tokens of ServiceAccounts, which end with the Secret that they are bound to.
//
// Not supported:
//   - Validation, defaults and admission.
//   - Authorization of known users.
//   - Finalizers and garbage collection.
//   - Server-side apply, paged lists and deletion of collections.
//
// Tests of behavior use a real API server.
package lightapi
