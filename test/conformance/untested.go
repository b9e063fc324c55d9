package conformance

// untestedRules are the rows of the contracts that are not tested here, with the reason.
var untestedRules = []*rule{
	{id: "B23", title: "uninitialized taint", level: may, exempt: "optional"},
	{
		id: "C3", title: "version discovery", level: info,
		exempt: "clusterctl finds versions where releases are published, which this suite does not reach",
	},
	{id: "P19", title: "in-place updates", level: may, exempt: "optional"},
	{id: "P27", title: "certificates", level: info, exempt: "expected only of providers that create the certificates of the cluster"},
	{id: "P37", title: "autoscaler", level: info, exempt: "works on MachineDeployments, which are Cluster API's own"},
}
