package versionoperator

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// The steps of a payload are the reasons of ReleaseAccepted.
const (
	stepRetrieve     = "RetrievePayload"
	stepVerify       = "VerifyPayloadVersion"
	stepPrecondition = "PreconditionChecks"
	stepLoaded       = "PayloadLoaded"
)

// validate returns the error in a request in the words of the cluster-version-operator, or an empty string. The schema
// rejects further errors.
//
// The cluster-version-operator without the feature gate ClusterUpdateAcceptRisks refuses accepted risks.
func validate(wanted *configv1.Update, recordsRisks bool, available []configv1.Release, history []configv1.UpdateHistory) string {
	if wanted == nil {
		return ""
	}
	invalid := func(message string) string {
		return fmt.Sprintf("The cluster version is invalid: spec.desiredUpdate.version: Invalid value: %q: %s", wanted.Version, message)
	}
	if len(wanted.AcceptRisks) > 0 && !recordsRisks {
		return "The cluster version is invalid: spec.desiredUpdate.acceptRisks: Forbidden: acceptRisks must not be specified"
	}
	if wanted.Version == "" && wanted.Image == "" {
		if len(wanted.AcceptRisks) > 0 {
			return ""
		}
		return "The cluster version is invalid: spec.desiredUpdate.version: Required value: must specify version or image"
	}
	if wanted.Version != "" {
		if _, err := semver.Parse(wanted.Version); err != nil {
			return invalid("must be a semantic version (1.2.3[-...])")
		}
	}
	if wanted.Image != "" {
		return ""
	}
	switch payloadsOf(wanted.Version, available, history) {
	case 0:
		return invalid("when image is empty the update must be an available update")
	case 1:
		return ""
	}
	return invalid("there are multiple possible payloads for this version, specify the exact image")
}

// payloadsOf counts the payloads of a version (countPayloadsForVersion of the cluster-version-operator).
func payloadsOf(version string, available []configv1.Release, history []configv1.UpdateHistory) int {
	count := 0
	for _, r := range available {
		if r.Version == version {
			count++
		}
	}
	if count == 0 && slices.ContainsFunc(history, func(h configv1.UpdateHistory) bool { return h.Version == version }) {
		return 1
	}
	return count
}

// resolve returns the update of a valid request, or nil. The image of a former version is unknown.
func resolve(wanted *configv1.Update, available []configv1.Release) *configv1.Update {
	switch {
	case wanted == nil, wanted.Version == "" && wanted.Image == "":
		return nil
	case wanted.Image != "":
		return &configv1.Update{Version: wanted.Version, Image: wanted.Image, Force: wanted.Force}
	case wanted.Architecture == configv1.ClusterVersionArchitectureMulti:
		return nil // no simulated release has several architectures
	}
	for _, r := range available {
		if r.Version == wanted.Version {
			return &configv1.Update{Version: r.Version, Image: r.Image, Force: wanted.Force}
		}
	}
	return nil
}

// refusal is the step and reason of a refused release.
type refusal struct{ step, message string }

// judge retrieves the payload of an update and checks it. risks are the failed checks that the request forces.
func (s *settings) judge(update configv1.Update, now cluster) (release Release, risks string, refused *refusal) {
	retrieving := func(failure string) *refusal {
		return &refusal{stepRetrieve, fmt.Sprintf("Retrieving payload failed version=%q image=%q failure=%s", update.Version,
			update.Image, failure)}
	}
	var waived []string
	release, known := s.payload(update.Image)
	if problem := unverified(update.Image, known && release.Unsigned); problem != "" {
		if !update.Force {
			return release, "", retrieving("The update cannot be verified: " + problem)
		}
		waived = append(waived, fmt.Sprintf("Target release version=%q image=%q cannot be verified, but continuing anyway "+
			"because the update was forced: %s", update.Version, update.Image, problem))
	}
	if !known {
		return release, "", retrieving("Unable to download and prepare the update: reading manifest " +
			cmp.Or(digest(update.Image), update.Image) + ": manifest unknown")
	}
	if update.Version != "" && update.Version != release.Version {
		return release, "", &refusal{
			stepVerify,
			fmt.Sprintf("Verifying payload failed version=%q image=%q failure=release image version %s does not match the "+
				"expected upstream version %s",
				update.Version, update.Image, release.Version, update.Version),
		}
	}
	if problem := now.preconditions(release.Version); problem != "" {
		if !update.Force {
			return release, "", &refusal{
				stepPrecondition,
				fmt.Sprintf("Preconditions failed for payload loaded version=%q image=%q: %s", release.Version, update.Image, problem),
			}
		}
		waived = append(waived, "Forced through blocking failures: "+problem)
	}
	return release, strings.Join(waived, "\n"), nil
}

func unverified(image string, unsigned bool) string {
	switch {
	case digest(image) == "":
		return "release images that are not accessed via digest cannot be verified"
	case unsigned:
		return "unable to verify " + digest(image) + " against keyrings: verifier-public-key-redhat"
	}
	return ""
}

// cluster has the inputs of preconditions.
type cluster struct {
	desired     configv1.Release
	history     []configv1.UpdateHistory
	upgradeable openshift.Condition
}

// preconditions returns the failed preconditions of a version in the words of the cluster-version-operator, or an empty
// string.
func (c cluster) preconditions(version string) string {
	current, err := semver.Parse(c.desired.Version)
	if err != nil {
		return ""
	}
	target, err := semver.Parse(version)
	if err != nil {
		return fmt.Sprintf("Precondition %q failed because of %q: %v", "ClusterVersionRollback", "InvalidDesiredVersion", err)
	}
	var failures []string
	for _, check := range []struct {
		name string
		run  func(current, target semver.Version) (reason, message string)
	}{{"ClusterVersionRollback", c.rollback}, {"ClusterVersionGiantHop", giantHop}, {"ClusterVersionUpgradeable", c.notUpgradeable}} {
		if reason, message := check.run(current, target); reason != "" {
			failures = append(failures, fmt.Sprintf("Precondition %q failed because of %q: %s", check.name, reason, message))
		}
	}
	if len(failures) > 1 {
		return "Multiple precondition checks failed:\n* " + strings.Join(failures, "\n* ")
	}
	return strings.Join(failures, "")
}

// rollback allows only the previous version, and only within a minor version.
func (c cluster) rollback(current, target semver.Version) (reason, message string) {
	if !target.LT(current) {
		return "", ""
	}
	const low = "LowDesiredVersion"
	for _, entry := range c.history {
		if entry.Version == c.desired.Version && entry.Image == c.desired.Image {
			continue
		}
		previous, err := semver.Parse(entry.Version)
		switch {
		case err != nil:
		case !target.EQ(previous):
			return low, fmt.Sprintf("%s is less than the current target %s, and the only supported rollback is to the "+
				"cluster's previous version %s (%s)", target, current, previous, entry.Image)
		case sameMinor(previous, current):
			return "", ""
		default:
			return low, fmt.Sprintf("%s is less than the current target %s and matches the cluster's previous version, but "+
				"rollbacks that change major or minor versions are not recommended", target, current)
		}
		break
	}
	return low, fmt.Sprintf("%s is less than the current target %s, and the cluster has no previous Semantic Version", target, current)
}

func sameMinor(a, b semver.Version) bool { return a.Major == b.Major && a.Minor == b.Minor }

// giantHop refuses to skip minor versions. 5.0 follows any 4.y.
func giantHop(current, target semver.Version) (reason, message string) {
	switch {
	case target.Major == current.Major && target.Minor > current.Minor+1:
		return "MultipleMinorVersionsUpdate",
			fmt.Sprintf("%s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), and only updates "+
				"within the current minor version or to the next minor version are supported.",
				target, current, target.Major, target.Minor, current.Major, current.Minor)
	case target.Major > current.Major && !(current.Major == 4 && target.Major == 5 && target.Minor == 0):
		return "MajorVersionUpdate",
			fmt.Sprintf("%s has a larger major version than the current target %s (%d > %d), and only updates within the "+
				"current major version are supported.",
				target, current, target.Major, current.Major)
	}
	return "", ""
}

// notUpgradeable refuses only other minor versions.
func (c cluster) notUpgradeable(current, target semver.Version) (reason, message string) {
	if c.upgradeable.Status != configv1.ConditionFalse || target.LTE(current) || sameMinor(current, target) {
		return "", ""
	}
	return c.upgradeable.Reason, c.upgradeable.Message
}

// gateName matches the gates that an administrator acknowledges before the upgrade to another minor version.
var gateName = regexp.MustCompile(`^ack-([4-5]\.\d+)-[^-]`)

// upgradeability returns the condition Upgradeable, without status if nothing blocks minor upgrades.
func upgradeability(
	current string, progressing bool, operators []configv1.ClusterOperator, gates, acks map[string]string,
) openshift.Condition {
	var reasons, messages []string
	add := func(reason, message string) {
		reasons, messages = append(reasons, reason), append(messages, message)
	}
	var unready []string
	for i := range operators {
		if c := openshift.FindCondition(&operators[i], configv1.OperatorUpgradeable); c != nil && c.Status == configv1.ConditionFalse {
			unready = append(unready, fmt.Sprintf("Cluster operator %s should not be upgraded between minor versions: %s: %s",
				operators[i].Name, c.Reason, c.Message))
		}
	}
	if len(unready) > 0 {
		add("ClusterOperatorsNotUpgradeable", strings.Join(unready, "\n"))
	}
	var unacknowledged []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		match := gateName.FindStringSubmatch(name)
		if match != nil && strings.HasPrefix(current, match[1]+".") && acks[name] != "true" {
			unacknowledged = append(unacknowledged, gates[name])
		}
	}
	if len(unacknowledged) > 0 {
		add("AdminAckRequired", strings.Join(unacknowledged, " "))
	}
	if progressing {
		add("UpdateInProgress", "An update is already in progress and the details are in the Progressing condition")
	}
	f := openshift.Condition{Type: configv1.OperatorUpgradeable}
	switch len(reasons) {
	case 0:
	case 1:
		f.Status, f.Reason, f.Message = configv1.ConditionFalse, reasons[0], messages[0]
	default:
		f.Status, f.Reason = configv1.ConditionFalse, "MultipleReasons"
		f.Message = "Cluster should not be upgraded between minor versions for multiple reasons: " + strings.Join(reasons,
			",") + "\n* " + strings.Join(messages, "\n* ")
	}
	return f
}
