package openshift

// Settings are the names, for messages, of what the user edits to change a control plane.
type Settings struct {
	// Release, Version, Channel and Image set spec.distributionVersion, spec.version, spec.upgrade.channel and
	// spec.config.releaseImage.
	Release, Version, Channel, Image string
	// Topology is true if the topology of a Cluster sets spec.version. Provisioning is true before the installation begins.
	Topology, Provisioning bool
}

// fixed returns why Cluster API refuses a version, which may be lower than that in the spec; "" if it does not. Its admission
// webhook refuses a lower version of a topology, and every other version until the control plane reports one.
func (s Settings) fixed(lower bool) string {
	switch {
	case !s.Topology:
		return ""
	case s.Provisioning:
		return "Cluster API accepts no other version of a topology before the cluster is installed"
	case lower:
		return "Cluster API accepts no lower version of a topology"
	}
	return ""
}

// SettingsOf returns the settings of a control plane. If it belongs to the topology of a Cluster, Cluster API reverts an edit of
// each field that the ClusterClass sets. That is always so for distributionVersion, which a topology must set: the field is
// required. Whether the class sets channel and image is not known.
func SettingsOf(topology bool) Settings {
	if !topology {
		return Settings{
			Release: "spec.distributionVersion", Version: "spec.version", Channel: "spec.upgrade.channel", Image: "config.releaseImage",
		}
	}
	return Settings{
		Release: "the variable of the Cluster's topology that sets spec.distributionVersion (distributionVersion in the ClusterClass sample)",
		Version: "spec.topology.version of the Cluster",
		Channel: "spec.upgrade.channel (variable upgradeChannel in the ClusterClass sample)",
		Image:   "config.releaseImage (variable releaseImage in the ClusterClass sample)",

		Topology: true,
	}
}
