# Turns a sample into a cluster template for clusterctl: variables in place of what differs between users. See `make generate`.
s/lab\.example\.com/${BASE_DOMAIN}/
s/192\.168\.111\.0\/24/${MACHINE_NETWORK}/
s/192\.168\.111\.[0-9]*5$/${API_VIP}/
s/192\.168\.111\.[0-9]*6$/${INGRESS_VIP}/
s/^\( *replicas: \)3$/\1${CONTROL_PLANE_MACHINE_COUNT}/
s/^\( *replicas: \)2$/\1${WORKER_MACHINE_COUNT}/
s/version: v*4\.[^ ]*/version: ${OPENSHIFT_VERSION}/
s/'{"auths".*}'/'${PULL_SECRET}'/
s/ Replace the placeholder before you apply\.//
s/https:\/\/images\.\${BASE_DOMAIN}\/.*qcow2$/${IMAGE_URL}/
s/https:\/\/images\.\${BASE_DOMAIN}\/.*sha256sum$/${IMAGE_CHECKSUM}/
