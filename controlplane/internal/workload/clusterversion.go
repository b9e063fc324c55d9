package workload

import "time"

// Rollout is the state of a cluster that works towards another release, has a request that it has not
// started, or fails.
type Rollout struct {
	// Requested is the last request. Unseen is true until the cluster has processed it. Pending is true while
	// it is neither what the cluster runs nor what it works towards.
	Requested       Update
	Unseen, Pending bool
	// Progress is the progress of the release in Upgrading, Failing its error, Refused why the request is not
	// started. They are for messages.
	Progress, Failing, Refused string
}

// Update is a request for a release. Empty fields follow from the update graph.
type Update struct {
	// Version is the version of the release, without leading v. Image is its image.
	Version, Image string
	// Force is true to check neither preconditions nor signature.
	Force bool
}

// ClusterVersion is the state of the release of a cluster and of possible updates, with the components that
// must be healthy before. It is read for an upgrade.
type ClusterVersion struct {
	// ResourceVersion is the resource version of the object.
	ResourceVersion string
	// Runs is the release that was completed last, Upgrading the one that is being rolled out over it. Former
	// are requests that were withdrawn.
	Runs, Upgrading string
	Former          []string
	Channel         string
	// Requested is the last request; Ours is true if this provider wrote it.
	Requested Update
	Ours      bool
	// Offers are the releases of the update graph.
	Offers []Offer
	// RecordsRisks is true if the cluster reads which risks of updates are accepted, from spec.desiredUpdate.acceptRisks
	// (feature gate ClusterUpdateAcceptRisks). AcceptedRisks are the risks in that field.
	RecordsRisks  bool
	AcceptedRisks []AcceptedRisk
	// NoOffers is why the cluster has no update graph, for messages; "" if it has one.
	NoOffers string
	// Gates are what an administrator must check before an upgrade from the running minor version.
	Gates []Gate
	// Images are the images of the releases in its history.
	Images []string
	// Unhealthy are the ClusterOperators and MachineConfigPools that are not healthy.
	Unhealthy []Ailment
}

// Ailment is a reason not to start an upgrade: a ClusterOperator or MachineConfigPool that is not healthy.
type Ailment struct {
	// Operator is the name of the ClusterOperator; "" for a MachineConfigPool.
	Operator string
	// Message is for people.
	Message string
}

// Offer is a release in the update graph of a cluster. It is recommended if it has no risks.
type Offer struct {
	Version, Image string
	Risks          []Risk
}

// Risk is why an update is not recommended.
type Risk struct{ Name, Message string }

// AcceptedRisk is a risk that is accepted in the cluster. Ours is true if this provider wrote it.
type AcceptedRisk struct {
	Name string
	Ours bool
}

// Gate is what an administrator must check.
type Gate struct {
	Name, Message string
	// Acknowledged is true if a user has confirmed the check.
	Acknowledged bool
}

// UpdateRequest is what is written into a cluster for an upgrade, without its empty fields.
type UpdateRequest struct {
	// ResourceVersion is the resource version of the ClusterVersion that was read.
	ResourceVersion string
	Channel         string
	Acknowledge     []string
	Update          *Update
	// Tolerated are the ailments despite which the update is requested, for messages.
	Tolerated []string
	// Accepted are the accepted risks of the update, for messages.
	Accepted []string
	// AcceptRisks replaces the risks that are accepted in the cluster: those of the update, and those that other clients
	// accepted. Nil keeps them.
	AcceptRisks []string
	// Withdraw withdraws the current request.
	Withdraw bool
	// Pause pauses MachineConfigPools; nil if none.
	Pause *PoolPause
}

// PoolPause is a pause of MachineConfigPools by this provider.
type PoolPause struct {
	Pools []string
	// Until is the Kubernetes version of the control plane that ends the pause, Since the start of the pause.
	Until string
	Since time.Time
}

// Empty reports whether nothing is written.
func (r *UpdateRequest) Empty() bool {
	return r.Channel == "" && len(r.Acknowledge) == 0 && r.Update == nil && !r.Withdraw && r.Pause == nil
}
