obj.spec.backend = obj.status.migration.from
return obj
