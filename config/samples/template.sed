# Turns a sample into a cluster template for clusterctl: variables in place of what differs between users. See `make generate`.
# A ConfigMap of the user, which is as long as a file, is omitted; the variable contains its name.
/^# The locations of images in the mirror/,/^---$/d
s/name: ${CLUSTER_NAME}-mirrors$/name: ${MIRRORS_CONFIG_MAP}/
s/lab\.example\.com/${BASE_DOMAIN}/
s/- ntp\.example\.com$/- ${NTP_SERVER}/
s/httpProxy: .*/httpProxy: ${CLUSTER_HTTP_PROXY}/
s/httpsProxy: .*/httpsProxy: ${CLUSTER_HTTPS_PROXY}/
s/noProxy: [^ ]*/noProxy: '${CLUSTER_NO_PROXY}'/
s/\(baseDomain: \|api\.${CLUSTER_NAME}\.\)example\.com$/\1${BASE_DOMAIN}/
s/\(192\.168\.111\|192\.0\.2\)\.0\/24/${MACHINE_NETWORK}/
s/\(192\.168\.111\|192\.0\.2\)\.[0-9]*5$/${API_VIP}/
s/\(192\.168\.111\|192\.0\.2\)\.[0-9]*6$/${INGRESS_VIP}/
s/2001:db8::\/64/${IPV6_MACHINE_NETWORK}/
s/2001:db8::5$/${IPV6_API_VIP}/
s/2001:db8::6$/${IPV6_INGRESS_VIP}/
s/^\( *replicas: \)3$/\1${CONTROL_PLANE_MACHINE_COUNT}/
# A cluster with fencing always has two nodes.
/^kind: OpenshiftAssistedControlPlane$/,/^---$/!s/^\( *replicas: \)2$/\1${WORKER_MACHINE_COUNT}/
s/distributionVersion: v*4\.[^ ]*/distributionVersion: ${OPENSHIFT_VERSION}/
s/value: 4\.[^ ]*/value: ${OPENSHIFT_VERSION}/
s/version: v1\.[^ ]*/version: ${KUBERNETES_VERSION}/
s/releaseImage: .*/releaseImage: ${RELEASE_IMAGE}/
s/'{"auths".*}'/'${PULL_SECRET}'/
s/ Replace the placeholder before you apply\.//
s/https:\/\/images\.\${BASE_DOMAIN}\/.*qcow2$/${IMAGE_URL}/
s/https:\/\/images\.\${BASE_DOMAIN}\/.*sha256sum$/${IMAGE_CHECKSUM}/
