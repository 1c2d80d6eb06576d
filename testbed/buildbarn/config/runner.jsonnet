// bb_runner: starts the commands of actions, for the worker on the same machine. DIR is the absolute path of their folder, which has a folder build.
{
  global: {},
  buildDirectoryPath: std.extVar('DIR') + '/build',
  grpcServers: [{ listenPaths: [std.extVar('DIR') + '/runner'], authenticationPolicy: { allow: {} } }],
}
