package conformance

// elsewhere are the rows of the contracts that are not tested here, with the reason.
var elsewhere = []*rule{
	{id: "B22", title: "sentinel file", level: should, exempt: "the contract's table does not ask for it, and infrastructure providers that boot discovery images do not read it"},
	{id: "B23", title: "uninitialized taint", level: may, exempt: "optional"},
	{id: "C2", title: "GitHub release", level: must, exempt: "a matter of publishing; C1 and C6 test what is published"},
	{id: "C3", title: "version discovery", level: info, exempt: "a matter of publishing"},
	{id: "P19", title: "in-place updates", level: may, exempt: "optional"},
	{id: "P25", title: "kubeconfig is not shared", level: must, exempt: "nothing to test: the documentation tells people to use another (docs/getting-started.md, docs/architecture.md)"},
	{id: "P27", title: "certificates", level: info, exempt: "expected only of providers that make the certificates of the cluster"},
	{id: "P37", title: "autoscaler", level: info, exempt: "works on MachineDeployments, which are Cluster API's own"},
}
