# The image of a container app. Stage first, so that dist/ is there: make stage && docker build -t roundhouse .
# The base is the Functions host of version 4; --build-arg FUNCTIONS_IMAGE=...@sha256:... names one build of it.
ARG FUNCTIONS_IMAGE=mcr.microsoft.com/azure-functions/dotnet:4
FROM ${FUNCTIONS_IMAGE}
ARG DIST=dist
ENV AzureWebJobsScriptRoot=/home/site/wwwroot \
    AzureFunctionsJobHost__Logging__Console__IsEnabled=true \
    FUNCTIONS_WORKER_RUNTIME=custom \
    ASPNETCORE_URLS=http://+:8080
COPY ${DIST} /home/site/wwwroot
# The host writes its logs below /home, and nothing else there.
RUN mkdir -p /home/LogFiles && chown 1654:1654 /home /home/LogFiles
USER 1654:1654
EXPOSE 8080
